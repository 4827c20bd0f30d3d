// What chaos does to the run's own gateway.

/** @typedef {import('../scenarios/contract.js').Disturbance['kind']} Kind */
/** @typedef {import('./gateway-process.js').GatewayProcess} GatewayProcess */

/** @param {number} value s */
const seconds = value => `${value.toFixed(1)} s`

/**
 * @param {GatewayProcess} gateway @param {Kind} kind @param {number} index of the worker
 * @param {number} kept subscriptions whose history the memory of the primary keeps
 * @returns {Promise<{text: string, forgotten?: number}>} what was done; subscriptions whose history it destroyed
 * @throws {Error} it could not be done
 */
export async function disturbGateway(gateway, kind, index, kept) {
  switch (kind) {
    case 'kill-worker':
      return { text: `worker ${await gateway.killWorker(index)} killed with SIGKILL` }
    case 'freeze-worker': {
      const { pid, lasted, isReplaced } = await gateway.freezeWorker(index)
      const end = isReplaced ? 'replaced by the gateway' : 'continued with SIGCONT'
      return { text: `worker ${pid} stopped with SIGSTOP, ${end} after ${seconds(lasted)}` }
    }
    case 'restart-workers':
      return {
        text: `all workers replaced in a rolling restart of ${seconds(await gateway.restartWorkers())}`,
      }
    case 'reload':
      return {
        text: `a reload of a key that takes new workers, which took ${seconds(await gateway.reload())}`,
      }
    case 'restart-gateway': {
      const { code, away } = await gateway.restart('SIGTERM')
      if (code !== 0) throw new Error(`the gateway ended with exit status ${code}`)
      const from = kept > 0 ? ' from its snapshot' : ''
      return { text: `the gateway ended with SIGTERM and started again${from}, away for ${seconds(away)}` }
    }
    case 'kill-gateway': {
      const { away } = await gateway.restart('SIGKILL')
      const text = `the gateway killed with SIGKILL and started again, away for ${seconds(away)}`
      return kept > 0 ? { text: `${text}, its history lost`, forgotten: kept } : { text }
    }
    default:
      throw new Error(`there is no disturbance ${kind}`)
  }
}
