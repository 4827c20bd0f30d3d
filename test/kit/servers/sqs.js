// moto's SQS for tests, with queues in memory.

import { SQSClient } from '@aws-sdk/client-sqs'
import { motoProgram } from '../../fleet/ec2/moto.js'
import { unless } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess, startServer } from './server-process.js'

const REGION = 'eu-west-1'
/** Any value works. */
export const CREDENTIALS = Object.freeze({ AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' })

/** For the `skip` option of fast-tier tests, which install nothing. */
export const withoutSqs = () =>
  unless(Boolean(process.env.MOTO_SERVER), 'MOTO_SERVER does not name moto_server (pip install moto[server])')

export class SqsServer extends ServerProcess {
  region = REGION

  endpoint = `http://127.0.0.1:${this.port}`

  /** The caller destroys it. */
  client() {
    return new SQSClient({
      region: REGION,
      endpoint: this.endpoint,
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    })
  }
}

/** @param {any} t ends with this test @returns {Promise<SqsServer>} running */
export async function startSqs(t) {
  const command = await motoProgram()
  return startServer(t, async () => {
    const port = await freePort()
    const run = {
      command,
      args: ['-H', '127.0.0.1', '-p', String(port)],
      ready: /Running on/,
      missing: `${command} cannot be run: the tests want moto_server (MOTO_SERVER may name one)`,
    }
    return new SqsServer(run, port)
  })
}
