import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { tempDir } from '../../kit/folders.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

t.test('without the AWS SDK, the error names the command that installs it', async t => {
  const folder = tempDir(t)
  for (const part of ['bin', 'src', 'dashboard', 'fleet', 'package.json'])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== '@aws-sdk' && !name.startsWith('.'))
      symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  const flags = [
    '--provider',
    'ec2',
    '--dry-run',
    '--host',
    'http://198.51.100.4',
    '--controller',
    '203.0.113.7:7000',
  ]
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(folder, 'bin/halley.js'), 'fleet', 'start', '1', ...flags, '--dir', join(folder, 'state')],
    { encoding: 'utf8', cwd: folder },
  )
  t.equal(status, 1, stdout)
  t.match(stderr, /^halley: [^\n]*not installed: npm install @aws-sdk\/client-ec2\n$/)
})
