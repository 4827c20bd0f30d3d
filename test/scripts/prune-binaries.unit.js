import { readdirSync } from 'node:fs'
import t from 'tap'
import { binaryOf, prune, superfluous } from '../../scripts/prune-binaries.js'
import { testdir } from '../kit/folders.js'

t.test('keeps the binary for this Node.js, and all other files', async t => {
  const own = binaryOf(process)
  const others = ['uws_linux_arm64_115.node', 'uws_win32_x64_999.node', 'uws_darwin_arm64_127.node'].filter(
    name => name !== own,
  )
  const rest = ['uws.js', 'index.d.ts', 'ESM_wrapper.mjs', 'other.node', 'uws_notes.md']
  const content = Object.fromEntries([own, ...others, ...rest].map(name => [name, 'x'.repeat(1e6)]))
  const folder = testdir(t, content)
  t.equal(prune(folder, { dryRun: true }), `would remove 3 binaries of uWebSockets.js, 3 MB; ${own} stays`)
  t.equal(readdirSync(folder).length, 9)
  t.equal(prune(folder, { dryRun: false }), `removed 3 binaries of uWebSockets.js, 3 MB; ${own} stays`)
  t.same(readdirSync(folder).sort(), [own, ...rest].sort())
  t.equal(prune(folder, { dryRun: false }), `removed 0 binaries of uWebSockets.js, 0 MB; ${own} stays`)
})

t.test('can be imported by `node -e`', async t => {
  const { argv } = process
  process.argv = argv.slice(0, 1)
  try {
    // The query makes it a new module.
    await t.resolves(import(`../../scripts/prune-binaries.js?${Date.now()}`))
  } finally {
    process.argv = argv
  }
})

t.test('without a binary for this Node.js nothing is removed', async t => {
  const folder = testdir(t, { 'uws_linux_x64_9999.node': 'x' })
  t.match(
    prune(folder, { dryRun: false }),
    /^nothing removed: uWebSockets\.js has no binary for this Node\.js/,
  )
  t.equal(readdirSync(folder).length, 1)
  t.same(superfluous(['uws_linux_x64_115.node'], 'uws_linux_x64_127.node'), [])
})
