import { execFile, execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { packProgram, readProgram, saveProgram, sourcesOf, withoutComments } from '../../fleet/program.js'
import { packageVersion } from '../../src/base/version.js'

const run = promisify(execFile)

/** @param {Buffer} bytes */
const programOf = bytes => ({ sha256: createHash('sha256').update(bytes).digest('hex'), bytes })

t.test('the program has all its source files and a reproducible hash', async t => {
  const { sha256, bytes } = await packProgram()
  t.strictSame(await packProgram(), { sha256, bytes })
  t.equal(programOf(bytes).sha256, sha256)
  /** @type {[string, string][]} */
  const files = JSON.parse(gunzipSync(bytes).toString())
  const root = new URL('../../', import.meta.url)
  const different = []
  for (const [path, text] of files)
    if (path !== 'package.json' && text !== (await readFile(new URL(path, root), 'utf8')))
      different.push(path)
  t.strictSame(different, [])
  const paths = files.map(([path]) => path)
  t.strictSame(paths, [...paths].sort())
  t.ok(paths.includes('src/metrics/tick-histogram.js'), 'also imports from src/')
})

t.test('the program runs in an otherwise empty folder', async t => {
  const folder = t.testdir()
  for (const [path, text] of await sourcesOf('fleet/drone/main.js')) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  // Others than the one that runs this test may be named: `HALLEY_TEST_NODES=/a/node:/b/node`.
  const nodes = [process.execPath, ...(process.env.HALLEY_TEST_NODES?.split(':') ?? [])]
  for (const node of nodes) {
    const { stdout } = await run(node, [join(folder, 'fleet/drone/main.js'), '--version'], {
      cwd: '/',
      env: {},
    })
    t.equal(stdout.trim(), packageVersion())
  }
})

t.test('a source that imports a package is refused', async t => {
  await t.rejects(sourcesOf('src/clients/server/node.js'), {
    message: /^src\/\S+\.js imports ws: a drone has no packages$/,
  })
})

t.test('only comments are removed', async t => {
  const text = `// one
/**
 * two
 */
const a = '/* kept */' // kept
  /** @type {any} three */
  const b = 2 /* kept */ * 3
`
  t.equal(withoutComments(text), "const a = '/* kept */' // kept\n  const b = 2 /* kept */ * 3\n")
})

t.test('the folder of a fleet keeps the latest programs by hash', async t => {
  const dir = t.testdir()
  const programs = Array.from({ length: 10 }, () => programOf(randomBytes(100)))
  for (const [i, program] of programs.entries()) {
    await saveProgram(dir, program)
    // The order of saving, even on a file system with a resolution of seconds.
    await utimes(join(dir, 'programs', `${program.sha256}.json.gz`), 1e9 + i, 1e9 + i)
  }
  t.equal((await readdir(join(dir, 'programs'))).length, 8)
  t.strictSame(await readProgram(dir, programs[2].sha256), programs[2])
  await t.rejects(readProgram(dir, programs[1].sha256), /the controller has no program [0-9a-f]{64}: stop/)
  // A program that is launched again is the latest one.
  await saveProgram(dir, programs[2])
  await saveProgram(dir, programOf(randomBytes(100)))
  t.strictSame(await readProgram(dir, programs[2].sha256), programs[2])
  await t.rejects(readProgram(dir, programs[3].sha256))
})

t.test('an invalid hash and a damaged program are refused', async t => {
  const dir = t.testdir({ 'secret.json.gz': 'x' })
  for (const odd of ['../secret', '', 7, null, undefined, ['a'], 'A'.repeat(64), 'g'.repeat(64)])
    await t.rejects(readProgram(dir, odd), /requires a SHA-256 of 64 hex digits/)
  const program = programOf(randomBytes(100))
  await saveProgram(dir, program)
  await writeFile(join(dir, 'programs', `${program.sha256}.json.gz`), 'damaged')
  await t.rejects(readProgram(dir, program.sha256), /copy of program [0-9a-f]{64} is damaged/)
  await t.rejects(saveProgram(join(dir, 'secret.json.gz'), program), { code: 'ENOTDIR' })
})

/** Fills a disk, and prints the state of the programs of a fleet: `node -e FULL DIR`. */
const FULL = `
  import { createHash } from 'node:crypto'
  import { readdirSync, writeFileSync } from 'node:fs'
  import { readProgram, saveProgram } from '${new URL('../../fleet/program.js', import.meta.url)}'
  const dir = process.argv[1]
  const programOf = (letter, size) => {
    const bytes = Buffer.alloc(size, letter)
    return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes }
  }
  const small = programOf('a', 1000)
  await saveProgram(dir, small)
  try {
    for (let i = 0; ; i++) writeFileSync(dir + '/filler' + i, Buffer.alloc(20_000))
  } catch {}
  const fault = await saveProgram(dir, programOf('b', 100_000)).catch(error => error.message)
  const again = await saveProgram(dir, small).catch(error => error.message)
  const { sha256 } = await readProgram(dir, small.sha256)
  const names = readdirSync(dir + '/programs')
  console.log(JSON.stringify({ fault, again: again ?? 'kept', whole: sha256 === small.sha256, names: names.length }))
`

t.test('a full disk and a file-size limit are one-line errors and keep the programs', async t => {
  const dir = await mkdtemp(join(tmpdir(), 'halley-full-'))
  let mounted = false
  t.teardown(async () => {
    if (mounted) execFileSync('umount', [dir])
    await rm(dir, { recursive: true })
  })
  /** @param {string} limit @param {string} folder */
  const outcome = async (limit, folder) => {
    const script = `${limit} exec "$0" --input-type=module -e "$1" "$2"`
    const { stdout } = await run('sh', ['-c', script, process.execPath, FULL, folder])
    return JSON.parse(stdout)
  }
  const limited = join(dir, 'limited')
  await mkdir(limited)
  t.strictSame(await outcome('ulimit -f 16;', limited), {
    fault: 'file too large',
    again: 'kept',
    whole: true,
    names: 1,
  })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir], { stdio: 'ignore' })
    mounted = true
  } catch {
    return t.comment('a full disk needs permission to mount one')
  }
  t.strictSame(await outcome('', dir), { fault: 'the disk is full', again: 'kept', whole: true, names: 1 })
})
