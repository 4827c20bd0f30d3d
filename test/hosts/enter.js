// Import this first in a test of several hosts. It runs the file again in namespaces of its own (network, mounts,
// processes): names and addresses are unique to the run, and all of it ends with the file, also when it is killed.
// A file that may not create namespaces is skipped with the reason.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { unless, withoutProgram } from '../kit/needs.js'

const INSIDE = 'TEST_INSIDE_HOSTS'
const NAMESPACES = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']

/** @param {string[]} command */
const run = command => spawnSync(command[0], command.slice(1), { stdio: 'ignore' }).status === 0

/** @returns {string | false} why hosts cannot be created */
function reason() {
  if (process.platform !== 'linux') return unless(false, 'network namespaces need Linux')
  const missing =
    withoutProgram('ip', 'iproute2') || withoutProgram('iptables') || withoutProgram('unshare', 'util-linux')
  if (missing) return missing
  const allowed = run([...command(), 'ip', 'link', 'add', 'br0', 'type', 'bridge'])
  return unless(allowed, 'network namespaces cannot be created: run as root')
}

/** Without root, a user namespace grants the rights if the system permits it. */
function command() {
  const user = process.getuid?.() === 0 ? [] : ['--map-root-user']
  return ['setpriv', '--pdeathsig', 'KILL', 'unshare', ...user, ...NAMESPACES]
}

if (process.env[INSIDE] === undefined) {
  const skipped = reason()
  if (skipped) {
    console.log(`TAP version 14\nok 1 - several hosts # SKIP ${skipped}\n1..1`)
    process.exit(0)
  }
  // Names of network namespaces are files below /run/netns; iptables has its lock there.
  const inner = ['sh', '-c', 'mount -t tmpfs tmpfs /run && exec "$@"', 'sh', process.execPath]
  const [program, ...args] = [...command(), ...inner, ...process.execArgv, ...process.argv.slice(1)]
  const { status } = spawnSync(program, args, { stdio: 'inherit', env: { ...process.env, [INSIDE]: '1' } })
  process.exit(status ?? 1)
}
if (!existsSync('/run/netns')) spawnSync('mkdir', ['-p', '/run/netns'])
