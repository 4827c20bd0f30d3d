// moto's SQS for tests: queues in the memory of a server of its own, on a free port of loopback. Killed, it forgets
// them.

import { SQSClient } from '@aws-sdk/client-sqs'
import { motoProgram } from '../../fleet/ec2/moto.js'
import { unless } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess } from './server-process.js'

const REGION = 'eu-west-1'
/** moto takes any. */
export const CREDENTIALS = Object.freeze({ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })

/** For the option `skip` of a test of the fast tier, which installs nothing. */
export const withoutSqs = () =>
  unless(Boolean(process.env.MOTO_SERVER), 'MOTO_SERVER does not name moto_server (pip install moto[server])')

export class SqsServer extends ServerProcess {
  region = REGION

  /** @param {import('./server-process.js').Run} run @param {number} port */
  constructor(run, port) {
    super(run)
    this.port = port
    this.endpoint = `http://127.0.0.1:${port}`
  }

  /** @returns {SQSClient} its owner destroys it */
  client() {
    return new SQSClient({
      region: REGION,
      endpoint: this.endpoint,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    })
  }

  async stop() {
    await this.kill()
  }
}

/** @param {any} t ends with this test @returns {Promise<SqsServer>} running */
export async function startSqs(t) {
  const port = await freePort()
  const command = await motoProgram()
  const server = new SqsServer(
    {
      command,
      args: ['-H', '127.0.0.1', '-p', String(port)],
      ready: /Running on/,
      missing: `${command} cannot be run: the tests want moto_server (MOTO_SERVER may name one)`,
    },
    port,
  )
  t.teardown(() => server.stop())
  await server.start()
  return server
}
