// Scraping of real gateways.

import http from 'node:http'
import { until } from '../../kit/wait.js'
import { parse } from './exposition.js'

/** @typedef {Map<string, import('./exposition.js').Family>} Scrape */

/**
 * On a connection of its own, so that any worker may get it.
 * @param {import('../../kit/gateway.js').TestGateway} gateway @returns {Promise<Scrape>}
 */
export function scrape({ port }) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/metrics', agent: false }
    http
      .get(options, async answer => {
        answer.setEncoding('utf8')
        let text = ''
        for await (const chunk of answer) text += chunk
        if (answer.statusCode === 200) resolve(parse(text))
        else reject(new Error(`${answer.statusCode}: ${text}`))
      })
      .on('error', reject)
  })
}

/**
 * Figures are those of the last full second, so it takes a while until they tell what has just been done.
 * @param {import('../../kit/gateway.js').TestGateway} gateway @param {(got: Scrape) => boolean} holds
 * @returns {Promise<Scrape>} the first one that it holds for
 */
export const settled = (gateway, holds) =>
  until(async () => {
    const got = await scrape(gateway)
    return holds(got) && got
  })
