// `npm ci` installs no package with a warning on any supported Node.js version.

import { readFileSync } from 'node:fs'
import t from 'tap'

const NODE_VERSIONS = ['20.19.0', '22.22.0', '24.14.0', '26.0.0']

/** @type {Record<string, any>} */
const packages = JSON.parse(
  readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
).packages

/** @param {string} text such as `20.19`, `10.x` @returns {number[]} major, minor, patch */
const partsOf = text => [0, 1, 2].map(index => Number.parseInt(text.split('.')[index] ?? '0', 10) || 0)

const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]

/**
 * @param {string} version
 * @param {string} range of npm: the part of it that the `engines` of our packages use
 * @returns {boolean}
 */
function satisfies(version, range) {
  const mine = partsOf(version)
  return range.split('||').some(alternative =>
    [...alternative.matchAll(/(>=|<|\^|)\s*([\d.x*]+)/g)].every(([, operator, bound]) => {
      if (bound === '*') return true
      const order = compare(mine, partsOf(bound))
      if (operator === '>=') return order >= 0
      if (operator === '<') return order < 0
      return mine[0] === partsOf(bound)[0] && order >= 0
    }),
  )
}

t.test('all packages support all supported Node.js versions', async t => {
  const excluded = Object.entries(packages).flatMap(([path, { engines, version }]) =>
    NODE_VERSIONS.filter(node => engines?.node && !satisfies(node, engines.node)).map(
      node => `${path}@${version} is not for Node.js ${node}: ${engines.node}`,
    ),
  )
  t.same(excluded, [])
})

t.test(
  'no package has an install script, is deprecated, or has a registry address in the lock file',
  async t => {
    const found = Object.entries(packages)
      .filter(([, one]) => one.hasInstallScript || one.deprecated || (one.resolved && !one.link))
      .map(([path]) => path)
    t.same(found, [])
  },
)
