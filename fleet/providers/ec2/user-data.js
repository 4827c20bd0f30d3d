// What an instance gets at launch: a cloud-config with the drone, its configuration, its service and the script that sets it up.

import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { constants, createGzip } from 'node:zlib'
import { recipes } from '../../../src/doctor/index.js'
import { ProviderError } from '../contract.js'
import { unpacker } from './squeeze.js'

/** EC2 takes so many bytes, before they are encoded in base64. */
export const USER_DATA_LIMIT = 16_384

/**
 * Instances of one RunInstances call share their user data; the launch index tells them apart (AmiLaunchIndex, `ami-launch-index` of
 * the metadata): drone `prefix` + (first + index). So a thousand drones are a few calls, and no instance is ever without its number.
 *
 * @typedef {object} Boot
 * @property {import('../../schema.js').LaunchConfig} config its `id` is not used
 * @property {string} prefix of the drones' ids
 * @property {number} first number of the first drone's id
 * @property {import('./squeeze.js').Squeezed} drone the packed one
 * @property {number} ends Unix ms at which the instance powers itself off
 * @property {string} nodeVersion `22` or `22.11.0`
 * @property {string} nodeUrl of a Node.js distribution
 * @property {number} memory of the machine, bytes
 */

/** From one address, to one port of the target. */
const CONNECTIONS = 64_000

const SETUP = new URL('./setup.sh', import.meta.url)

/**
 * @param {Record<string, string | number>} [values] shell variables
 * @returns {Promise<string>} the script as it is sent, without its comments: every byte counts
 */
export async function setupScript(values = {}) {
  const given = Object.entries(values).map(([name, value]) => `${name}=${word(String(value))}`)
  const lines = (await readFile(SETUP, 'utf8')).split('\n')
  return `${[...given, ...lines.filter(line => !/^\s*(?:#.*)?$/.test(line))].join('\n')}\n`
}

/**
 * The configuration is root's alone, and the service gets a copy that only it can read.
 */
const DRONE_SERVICE = `[Unit]
StartLimitIntervalSec=0

[Service]
User=halley
DynamicUser=yes
LoadCredential=drone.json:/etc/halley/drone.json
ExecStart=/opt/halley/bin/node /opt/halley/drone.mjs \${CREDENTIALS_DIRECTORY}/drone.json
Restart=always
RestartSec=2
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
`

/** Powering off is terminating (InstanceInitiatedShutdownBehavior). Where it hangs, the kernel is asked without ceremony. */
const OFF = 'systemctl poweroff; sleep 90; poweroff -f -f'

/**
 * A YAML scalar: a block for what can stand in one, JSON for the rest.
 *
 * @param {string} text
 */
function scalar(text) {
  const lines = text.split('\n')
  // A block keeps what it is given, except for control characters, and a first line that begins with a blank would set its indent.
  if (!/^[\x20-\x7e\n]+\n$/.test(text) || text.endsWith('\n\n') || /^[ \n]/.test(text))
    return JSON.stringify(text)
  return `|\n${lines
    .slice(0, -1)
    .map(line => (line === '' ? '' : `    ${line}`))
    .join('\n')}`
}

/** @param {string} text @returns {string} one word for the shell */
const word = text => `'${text.replaceAll("'", "'\\''")}'`

/**
 * @param {Boot} boot
 * @returns {Promise<string>} the cloud-config, not compressed
 */
export async function cloudConfig({ config, prefix, first, drone, ends, nodeVersion, nodeUrl, memory }) {
  const { sysctl } = recipes({ connections: CONNECTIONS, role: 'drone', memory, comments: false })
  const seconds = Math.ceil(ends / 1000)
  const setup = await setupScript({
    ENDS: seconds,
    NODE_FROM: `${nodeUrl}/${nodeVersion.includes('.') ? `v${nodeVersion}` : `latest-v${nodeVersion}.x`}`,
    ID_PREFIX: prefix,
    ID_FIRST: first,
  })
  /** @type {[path: string, text: string][]} */
  const files = [
    ['/opt/halley/setup.sh', setup],
    ['/etc/halley/drone.json.in', `${JSON.stringify({ ...config, id: '@ID@' })}\n`],
    ['/etc/sysctl.d/90-halley.conf', sysctl],
    ['/etc/systemd/system/halley-drone.service', DRONE_SERVICE],
    ['/opt/halley/unpack.cjs', unpacker()],
    ['/opt/halley/drone.packed', `${drone.size} ${drone.packed.toString('base64')}\n`],
  ]
  // bootcmd is the first thing that runs, at every boot, when nothing of systemd may be asked yet.
  const loop = `setsid sh -c 'while [ $(date +%s) -lt ${seconds} ]; do sleep 15; done; ${OFF}' >/dev/null 2>&1 &`
  return [
    '#cloud-config',
    'bootcmd:',
    `- [sh, -c, ${JSON.stringify(loop)}]`,
    'runcmd:',
    '- [sh, /opt/halley/setup.sh]',
    'write_files:',
    ...files.map(([path, text]) => {
      const mode = text.includes(config.secret) ? '  permissions: "0600"\n' : ''
      return `- path: ${path}\n${mode}  content: ${scalar(text)}`
    }),
    '',
  ].join('\n')
}

/**
 * @param {Boot} boot
 * @returns {Promise<Buffer>} gzip, which cloud-init reads as it is
 * @throws {ProviderError} when it is more than EC2 takes
 */
export async function userData(boot) {
  const text = await cloudConfig(boot)
  // What is packed already has no repetitions, and its letters a code of their own: apart from the rest it takes 4 % less.
  const start = text.lastIndexOf(' ', text.length - 2)
  /** @type {any} its `params` is not declared */
  const gzip = createGzip({ level: 9, memLevel: 9 })
  const whole = buffer(gzip)
  gzip.write(text.slice(0, start))
  await promisify(gzip.params.bind(gzip))(9, constants.Z_HUFFMAN_ONLY)
  gzip.end(text.slice(start))
  const packed = await whole
  if (packed.length > USER_DATA_LIMIT)
    throw new ProviderError(
      `the user data of a drone takes ${packed.length} bytes, compressed (its program ${boot.drone.packed.length}), and EC2 takes ${USER_DATA_LIMIT}: allow fewer targets`,
    )
  return packed
}
