// The user data of an instance: a cloud-config with the drone's bootstrap, configuration, service and setup script.

import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { recipes } from '../../../src/metrics/doctor/index.js'
import { sourcesOf, withoutComments } from '../../program.js'
import { ProviderError } from '../contract.js'

/** EC2's limit in bytes, before base64. */
export const USER_DATA_LIMIT = 16_384

/**
 * Instances of one call share their user data. Their launch index selects the drone: `prefix` + (first + index).
 * @typedef {ReturnType<typeof import('./plan.js').bootOf>} Boot
 */

/** Connections from one address to one port of the target. */
const CONNECTIONS = 64_000

const SETUP = new URL('./setup.sh', import.meta.url)
const BOOTSTRAP = 'fleet/drone/bootstrap.js'

/** Without comments. @param {Record<string, string | number>} [values] shell variables */
export async function setupScript(values = {}) {
  const given = Object.entries(values).map(([name, value]) => `${name}=${word(String(value))}`)
  const lines = (await readFile(SETUP, 'utf8')).split('\n')
  return `${[...given, ...lines.filter(line => !/^\s*(?:#.*)?$/.test(line))].join('\n')}\n`
}

/** Only root can read the configuration, only the service its copy. @param {string} sha256 of the program */
const droneService = sha256 => `[Unit]
StartLimitIntervalSec=0

[Service]
User=halley
DynamicUser=yes
StateDirectory=halley
LoadCredential=drone.json:/etc/halley/drone.json
ExecStart=/opt/halley/bin/node /opt/halley/${BOOTSTRAP} \${CREDENTIALS_DIRECTORY}/drone.json ${sha256} \${STATE_DIRECTORY}
Restart=always
RestartSec=2
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
`

/** Powering off terminates the instance (InstanceInitiatedShutdownBehavior). If it hangs, power-off is forced. */
const OFF = 'systemctl poweroff; sleep 90; poweroff -f -f'

/** A YAML scalar: a block where possible, else JSON. @param {string} text */
function scalar(text) {
  const lines = text.split('\n')
  // A block keeps its text, except for control characters; a leading blank in the first line would set its indent.
  if (!/^[\x20-\x7e\n]+\n$/.test(text) || text.endsWith('\n\n') || /^[ \n]/.test(text))
    return JSON.stringify(text)
  return `|\n${lines
    .slice(0, -1)
    .map(line => (line === '' ? '' : `    ${line}`))
    .join('\n')}`
}

/** @param {string} text @returns {string} one word for the shell */
const word = text => `'${text.replaceAll("'", "'\\''")}'`

/** @param {Boot} boot @returns {Promise<string>} the cloud-config, not compressed */
async function cloudConfig({ config, prefix, first, sha256, ends, nodeVersion, nodeUrl, memory }) {
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
    ['/etc/systemd/system/halley-drone.service', droneService(sha256)],
  ]
  for (const [path, text] of await sourcesOf(BOOTSTRAP))
    files.push([`/opt/halley/${path}`, withoutComments(text).trimStart()])
  // bootcmd runs first, at every boot, before systemd accepts requests.
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

/** Gzip, which cloud-init accepts. @param {Boot} boot @throws {ProviderError} too large for EC2 */
export async function userData(boot) {
  const packed = await promisify(gzip)(await cloudConfig(boot), { level: 9 })
  if (packed.length > USER_DATA_LIMIT)
    throw new ProviderError(
      `the user data of a drone has ${packed.length} compressed bytes, more than the ${USER_DATA_LIMIT} of EC2: its configuration is too long (${boot.config.allow.length} targets in --allow, --api-key, --token-secret)`,
    )
  return packed
}
