// Started by a machine's user data: downloads the drone's program from the controller and starts it.
//
//   node bootstrap.js CONFIG SHA256 FOLDER
//
// The launch sets the SHA-256 of the program archive: no controller can replace the program. The archive
// stays in FOLDER: a restarted drone needs no download.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { dialLink, listenLinks } from '../link/tls.js'
import { parseConfig } from './config.js'

/** @import { Link } from '../link/link.js' */

/** Maximum ms between attempts: first, longest. Jitter subtracts up to half, to spread the machines. */
const PAUSE = { first: 1000, longest: 30_000 }
const TIMEOUT = 120_000
const MAX_SIZE = 64 << 20

const [, , configFile, sha256, folder] = process.argv

/** @param {string} text */
const log = text => process.stdout.write(`bootstrap: ${text}\n`)
process.stdout.on('error', () => {})

/** @param {Buffer} bytes */
const sha256Of = bytes => createHash('sha256').update(bytes).digest('hex')

/** @param {ReturnType<typeof parseConfig>} config @returns {Promise<{link: Link, close: () => Promise<void>}>} */
async function connect(config) {
  if (!config.listen) {
    const link = await dialLink({ ...config, identity: `${config.run}/${config.id}` })
    return { link, close: () => link.close() }
  }
  /** @type {(link: Link) => void} */
  let onLink = () => {}
  /** @type {Promise<Link>} */
  const link = new Promise(resolve => {
    onLink = resolve
  })
  // Port scans are not logged: they would fill the disk.
  const { close } = await listenLinks({ ...config, onLink, onFault: () => {} })
  log(`waiting for the controller on port ${config.port}`)
  return { link: await link, close }
}

/** @param {ReturnType<typeof parseConfig>} config @returns {Promise<Buffer>} the archive */
async function download(config) {
  const { link, close } = await connect(config)
  try {
    const { id, run } = config
    const request = { type: 'program', id, run, sha256 }
    const bytes = Buffer.from(String(await link.request(request, { timeout: TIMEOUT })), 'base64')
    if (sha256Of(bytes) !== sha256)
      throw new Error(`refused the program of the controller: its SHA-256 is ${sha256Of(bytes)}`)
    return bytes
  } finally {
    // Frees a listen port for the drone; the controller's pause grows with each fault.
    await close()
  }
}

/** @param {string} archive path @param {Buffer} bytes */
async function save(archive, bytes) {
  const draft = `${archive}.part`
  try {
    await mkdir(folder, { recursive: true })
    await writeFile(draft, bytes)
    await rename(draft, archive)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** Writes the missing files of the program. @param {Buffer} bytes checked archive @param {string} target folder */
async function unpack(bytes, target) {
  const files = JSON.parse(gunzipSync(bytes, { maxOutputLength: MAX_SIZE }).toString())
  for (const [path, text] of files) {
    const file = join(target, path)
    if (!file.startsWith(join(target, '/'))) throw new Error(`the program has a file ${path}`)
    if ((await readFile(file, 'utf8').catch(() => null)) === text) continue
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
}

/** @returns {Promise<string>} the drone's program, checked */
async function prepare() {
  const config = parseConfig(readFileSync(configFile, 'utf8'))
  const archive = join(folder, `${sha256}.json.gz`)
  const target = join(folder, sha256)
  for (let pause = PAUSE.first; ; pause = Math.min(2 * pause, PAUSE.longest)) {
    try {
      /** @type {Buffer} */
      let bytes = await readFile(archive).catch(() => Buffer.alloc(0))
      if (sha256Of(bytes) !== sha256) {
        bytes = await download(config)
        await save(archive, bytes)
        log(`received program ${sha256}`)
      }
      await unpack(bytes, target)
      return join(target, 'fleet/drone/main.js')
    } catch (error) {
      log(`no program yet: ${error.message}; next attempt within ${pause / 1000} s`)
      await sleep(pause * (0.5 + Math.random() / 2))
    }
  }
}

const program = await prepare().catch(error => {
  process.stderr.write(`bootstrap: ${configFile}: ${error.message}\n`)
  process.exit(2)
})
process.argv = [process.argv[0], program, configFile]
await import(pathToFileURL(program).href)
