// The Debian roots and the releases of Node.js that cells run in, kept in a cache folder. Addresses of mirrors and
// registries, proxies and certificates are those of this machine.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {import('./processes.js').Processes} Processes */

/** Version of Debian -> suite. */
const SUITES = /** @type {Record<number, string>} */ ({ 13: 'trixie', 12: 'bookworm' })
/** Node.js 26 requires libatomic1; git is for the clone. */
const BASE_PACKAGES = 'ca-certificates,git,libatomic1'
/** Older roots are created again. */
const MAX_AGE_MS = 14 * 86_400_000
/** npm that comes with a release of Node.js: the package of Node.js in npm's registry has none. */
const npmOf = (/** @type {number} */ release) => (release < 24 ? 'npm@10' : 'npm@11')
const PROGRAMS = '/opt/programs'

/** User of the cells. */
export const UID = 1000
export const HOME = '/home/halley'

/** @param {string} folder @returns {string[]} paths of its entries */
const entries = folder => (existsSync(folder) ? readdirSync(folder).map(name => join(folder, name)) : [])

/** Mounts are in namespaces of their own: here are only files. @param {string[]} paths */
export const remove = (...paths) =>
  execFileSync('rm', ['-rf', '--one-file-system', ...paths], { stdio: 'ignore' })

/** @param {string} suite @returns {string[]} lines of sources.list with the mirrors that apt has here */
function sources(suite) {
  const files = ['/etc/apt/sources.list', ...entries('/etc/apt/sources.list.d')].filter(file =>
    existsSync(file),
  )
  const words = files.flatMap(file =>
    (readFileSync(file, 'utf8').match(/^(?:URIs:|deb )[^#\n]*/gm) ?? []).flatMap(line => line.split(/\s+/)),
  )
  const debian = words.find(word => /\/debian\/?$/.test(word)) ?? 'http://deb.debian.org/debian'
  const security = words.find(word => /\/debian-security\/?$/.test(word))
  return [
    `deb ${debian} ${suite} main`,
    `deb ${debian} ${suite}-updates main`,
    ...(security ? [`deb ${security} ${suite}-security main`] : []),
  ]
}

/** @returns {NodeJS.ProcessEnv} without what the npm that runs this program has set */
const npmEnvironment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(?!config_registry$)/i.test(name)))

/** Settings of npm by which this machine reaches a registry; others may make npm warn. */
const NPM_NETWORK =
  /^(?:(?:@[^:=]+:)?registry|ca(?:file)?(?:\[\])?|(?:https?-)?proxy|no-?proxy|strict-ssl|\/\/.*)\s*=/

/** @returns {string} their lines of this machine's .npmrc files */
export function npmrc() {
  const options = /** @type {const} */ ({ encoding: 'utf8', env: npmEnvironment() })
  return ['globalconfig', 'userconfig']
    .map(key => execFileSync('npm', ['config', 'get', key], options).trim())
    .flatMap(file => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []))
    .filter(line => NPM_NETWORK.test(line.trim()))
    .map(line => `${line}\n`)
    .join('')
}

export class Roots {
  /** Names that were looked at in this run. @type {Set<string>} */
  #seen = new Set()

  /**
   * @param {object} options
   * @param {string} options.cache folder
   * @param {boolean} options.fresh whether everything is made again
   * @param {Processes} options.processes
   * @param {(text: string) => void} options.say
   * @throws {Error} when the folder is not root's
   */
  constructor({ cache, fresh, processes, say }) {
    this.cache = cache
    this.fresh = fresh
    this.processes = processes
    this.say = say
    mkdirSync(join(cache, 'logs'), { recursive: true })
    const { uid } = lstatSync(cache)
    if (uid !== 0)
      throw new Error(`${cache} belongs to user ${uid}, not to root: --cache names another folder`)
    // The user of the cells can access the mounts, other users of this machine cannot.
    chmodSync(cache, 0o700)
    for (const old of entries(cache).filter(path => /\/run-\d+$/.test(path)))
      if (!existsSync(`/proc/${old.slice(old.lastIndexOf('-') + 1)}`)) remove(old)
    /** Files of this run. */
    this.scratch = join(cache, `run-${process.pid}`)
    mkdirSync(this.scratch)
  }

  /** @param {string} name @returns {string} */
  log(name) {
    return join(this.cache, 'logs', `${name}.log`)
  }

  /**
   * @param {string} name of a folder of the cache
   * @param {(folder: string) => Promise<unknown>} make unless it is there and not too old
   * @returns {Promise<string>} its path
   */
  async #cached(name, make) {
    const folder = join(this.cache, name)
    const first = !this.#seen.has(name)
    this.#seen.add(name)
    const usable = existsSync(folder) && Date.now() - statSync(folder).mtimeMs < MAX_AGE_MS
    if (usable && !(first && this.fresh)) return folder
    remove(folder)
    this.say(`${name}: creating the root`)
    const unfinished = join(this.scratch, name)
    await make(unfinished)
    execFileSync('touch', [unfinished])
    renameSync(unfinished, folder)
    return folder
  }

  /** @param {number} debian @returns {Promise<string>} folder of a minimal root with git and the cells' user */
  bare(debian) {
    return this.#cached(`debian-${debian}`, async folder => {
      const suite = SUITES[debian]
      const lines = sources(suite)
      const log = this.log(`debian-${debian}`)
      const args = ['--variant=minbase', `--include=${BASE_PACKAGES}`, suite, folder, lines[0].split(' ')[1]]
      await this.processes.must('debootstrap', args, { log })
      writeFileSync(join(folder, 'etc/apt/sources.list'), `${lines.join('\n')}\n`)
      writeFileSync(
        join(folder, 'etc/apt/apt.conf.d/80host'),
        execFileSync('apt-config', ['dump', 'Acquire'], { encoding: 'utf8' }),
      )
      writeFileSync(join(folder, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost ip6-localhost\n')
      writeFileSync(join(folder, 'etc/resolv.conf'), '')
      const user = [folder, 'useradd', '-m', '-u', String(UID), '-s', '/bin/bash', 'halley']
      await this.processes.must('chroot', user, { log })
    })
  }

  /** @param {number} debian @returns {Promise<string>} folder of a root with the programs of the tests */
  async full(debian) {
    const base = await this.bare(debian)
    const script = fileURLToPath(new URL('programs.sh', import.meta.url))
    const prefix = `debian-${debian}-programs-`
    const version = createHash('sha256').update(readFileSync(script)).digest('hex').slice(0, 8)
    return this.#cached(`${prefix}${version}`, async folder => {
      remove(...entries(this.cache).filter(path => path.includes(`/${prefix}`)))
      const log = this.log(`debian-${debian}-programs`)
      await this.processes.must('cp', ['-a', '--reflink=auto', base, folder], { log })
      copyFileSync(script, join(folder, 'opt/programs.sh'))
      const command = `source /opt/programs.sh; install_packages; mkdir ${PROGRAMS} && install_python_tools ${PROGRAMS}`
      const root = { root: folder, user: '0:0', home: '/root', network: true, log, command }
      const { status, output } = await this.processes.inRoot(root)
      if (status !== 0) throw new Error(`programs.sh failed (${log}):\n${output.slice(-2000)}`)
    })
  }

  /**
   * @param {string} root folder of `full`
   * @returns {{binds: Record<string, string>, env: Record<string, string>}} its programs that are not Debian's, and
   *   those that variables name here
   */
  programs(root) {
    const env = /** @type {Record<string, string>} */ ({})
    const binds = /** @type {Record<string, string>} */ ({})
    const within = {
      MOTO_SERVER: `${PROGRAMS}/moto/bin/moto_server`,
      DEPLOYMENT_CHECKERS: `${PROGRAMS}/checkers/bin`,
    }
    for (const [name, path] of Object.entries(within)) if (existsSync(join(root, path))) env[name] = path
    for (const name of ['NATS_SERVER', 'KAFKA_LIBS']) {
      const path = process.env[name]
      if (!path) continue
      env[name] = `/opt/${name.toLowerCase()}`
      binds[path] = env[name]
    }
    return { binds, env }
  }

  /** @param {number} release @returns {Promise<string>} folder of a Node.js, with `bin` */
  node(release) {
    return this.#cached(`node-${release}`, async folder => {
      // The package that the install script of `node` installs.
      const node = `node-linux-${process.arch}`
      const flags = ['--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']
      mkdirSync(join(folder, 'bin'), { recursive: true })
      writeFileSync(join(folder, 'package.json'), '{}')
      await this.processes.must('npm', ['install', ...flags, `${node}@${release}`, npmOf(release)], {
        log: this.log(`node-${release}`),
        env: npmEnvironment(),
      })
      const links = { node: `${node}/bin/node`, npm: 'npm/bin/npm-cli.js', npx: 'npm/bin/npx-cli.js' }
      for (const [name, target] of Object.entries(links))
        symlinkSync(join('../node_modules', target), join(folder, 'bin', name))
    })
  }

  /** Removes the files of this run. Files may still be written until the last process has ended. */
  close() {
    for (let tries = 0; existsSync(this.scratch) && tries < 50; tries++)
      try {
        remove(this.scratch)
      } catch {}
  }
}
