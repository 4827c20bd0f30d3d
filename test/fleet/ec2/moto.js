// moto, a mock of EC2 and SQS from PyPI.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../kit/ports.js'
import { pythonPrograms } from '../../kit/python-packages.js'

/** The version that the tests were written against; .ci/run installs the same one. */
const VERSION = '5.2.5'

/** @returns {Promise<string>} path of the program: $MOTO_SERVER, or one that is installed once */
export const motoProgram = async () =>
  process.env.MOTO_SERVER ||
  join(await pythonPrograms(`moto-${VERSION}`, [`moto[server]==${VERSION}`]), 'moto_server')

/** @param {string} id @param {string} date @param {string} [more] @param {Record<string, any>} [other] */
const image = (id, date, more = 'noble-24.04-amd64', other = {}) => ({
  ami_id: id,
  name: `ubuntu/images/hvm-ssd-gp3/ubuntu-${more}-server-${date}`,
  description: `Canonical, Ubuntu, ${more}`,
  owner_id: '099720109477',
  public: true,
  virtualization_type: 'hvm',
  architecture: /arm64/.test(more) ? 'arm64' : 'x86_64',
  state: 'available',
  platform: null,
  image_type: 'machine',
  hypervisor: 'xen',
  root_device_name: '/dev/sda1',
  root_device_type: 'ebs',
  sriov: 'simple',
  creation_date: `${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}T06:00:00.000Z`,
  ...other,
})

/** The newest matching one is neither the first nor the last, and others look similar. */
export const NEWEST = 'ami-0fe1a0000000000a2'
export const NEWEST_ARM = 'ami-0fe1a0000000000c1'
const IMAGES = [
  image('ami-0fe1a0000000000a1', '20240423'),
  image(NEWEST, '20250610'),
  image('ami-0fe1a0000000000a3', '20250115'),
  image('ami-0fe1a0000000000a4', '20260101', 'jammy-22.04-amd64'),
  image('ami-0fe1a0000000000a5', '20260101', 'noble-24.04-amd64', { state: 'pending' }),
  image('ami-0fe1a0000000000a6', '20260101', 'noble-24.04-amd64', { owner_id: '666666666666' }),
  image('ami-0fe1a0000000000a7', '20260101', 'xenial-16.04-amd64'),
  image(NEWEST_ARM, '20250501', 'noble-24.04-arm64'),
]

export class Moto {
  #child
  #proxy
  #folder
  /**
   * What the proxy answers to `Action region`, as EC2 would, while `times` lasts.
   * @type {Map<string, {code: string, message: string, status: number, times: number}>}
   */
  faults = new Map()
  /** @type {string[]} `Action region` of each request */
  calls = []

  /**
   * @param {import('node:child_process').ChildProcess} child
   * @param {import('node:http').Server} proxy
   * @param {string} folder
   */
  constructor(child, proxy, folder) {
    this.#child = child
    this.#proxy = proxy
    this.#folder = folder
  }

  /** @returns {string} URL of the endpoint */
  get url() {
    return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.#proxy.address()).port}`
  }

  /**
   * @returns {Promise<Moto>}
   * @throws {Error} where it cannot be installed
   */
  static async start() {
    const path = await motoProgram()
    const folder = await mkdtemp(join(tmpdir(), 'halley-ec2-'))
    const images = join(folder, 'images.json')
    await writeFile(images, JSON.stringify(IMAGES))
    const port = await freePort()
    const child = spawn(path, ['-H', '127.0.0.1', '-p', String(port)], {
      env: { ...process.env, MOTO_AMIS_PATH: images, MOTO_ENABLE_AMI_VALIDATION: 'true' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    process.once('exit', () => child.kill('SIGKILL'))
    await new Promise((resolve, reject) => {
      let output = ''
      child.once('error', reject)
      child.once('exit', code => reject(new Error(`moto_server ended with ${code}: ${output}`)))
      createInterface({ input: /** @type {any} */ (child.stderr) }).on('line', line => {
        output = `${output}${line}\n`.slice(-2000)
        if (/Running on/.test(line)) resolve(undefined)
      })
    })
    const proxy = createServer((incoming, answer) => void moto.#pass(incoming, answer, port))
    const moto = new Moto(child, proxy, folder)
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    return moto
  }

  /**
   * @param {import('node:http').IncomingMessage} incoming
   * @param {import('node:http').ServerResponse} answer
   * @param {number} port
   */
  async #pass(incoming, answer, port) {
    const chunks = []
    for await (const chunk of incoming) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const action = new URLSearchParams(body.toString()).get('Action')
    const region = /Credential=[^/]+\/\d+\/([^/]+)\//.exec(incoming.headers.authorization ?? '')?.[1]
    const call = `${action} ${region}`
    this.calls.push(call)
    const fault = this.faults.get(call)
    if (fault && fault.times-- > 0) {
      answer.writeHead(fault.status, { 'content-type': 'text/xml;charset=UTF-8' })
      answer.end(
        `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>${fault.code}</Code><Message>${fault.message}</Message></Error></Errors><RequestID>ea966190-f9aa-478e-9ede-example</RequestID></Response>`,
      )
      return
    }
    const { method, url: path, headers } = incoming
    const onward = request({ host: '127.0.0.1', port, method, path, headers }, response => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    onward.on('error', () => answer.destroy())
    onward.end(body)
  }

  /**
   * @param {string} action
   * @param {string} region
   * @param {string} code
   * @param {string} message
   * @param {{status?: number, times?: number}} [options]
   */
  refuse(action, region, code, message, { status = 400, times = Number.POSITIVE_INFINITY } = {}) {
    this.faults.set(`${action} ${region}`, { code, message, status, times })
  }

  async stop() {
    this.#proxy.closeAllConnections()
    this.#proxy.close()
    const ended = once(this.#child, 'exit')
    this.#child.removeAllListeners('exit')
    this.#child.kill('SIGKILL')
    await Promise.race([ended, once(this.#child, 'close')])
    await rm(this.#folder, { recursive: true, force: true })
  }
}
