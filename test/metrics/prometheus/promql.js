// The names in a PromQL expression, to compare dashboards and alerts with existing metrics.

import assert from 'node:assert/strict'

const WORDS = new Set(
  `sum max min avg count rate increase histogram_quantile clamp_min time
  by without on ignoring group_left group_right and or unless offset bool`.split(/\s+/),
)
const GROUPING = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right'])
/** Metrics that Prometheus adds to every scrape. */
const TARGET = ['job', 'instance']
const TOKEN =
  /\s+|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-zA-Z_:][a-zA-Z0-9_:]*|\d+(?:\.\d+)?(?:e-?\d+)?|=~|!~|!=|==|<=|>=|[{}()=,<>+\-*/%^]/gy

/** @param {string} expression @returns {string[]} */
function tokensOf(expression) {
  const tokens = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < expression.length) {
    const at = TOKEN.lastIndex
    const [token] = TOKEN.exec(expression) ?? assert.fail(`${expression.slice(at)} in ${expression}`)
    if (token.trim() !== '') tokens.push(token)
  }
  return tokens
}

/**
 * @param {string[]} tokens @param {number} open index of `(` or `{`
 * @returns {string[]} names up to what closes it, that are not values
 */
function namesFrom(tokens, open) {
  const close = tokens[open] === '(' ? ')' : '}'
  const inside = tokens.slice(open + 1, tokens.indexOf(close, open))
  return inside.filter(token => /^[a-zA-Z_]/.test(token))
}

/**
 * @param {string} expression without variables of Grafana
 * @param {Map<string, {type: string, labels: readonly string[]}>} families
 * @returns {string[]} names of families that it looks at; throws where it names what is not there
 */
export function check(expression, families) {
  const tokens = tokensOf(expression)
  for (const [open, close] of ['()', '{}']) {
    const count = (/** @type {string} */ bracket) => tokens.filter(token => token === bracket).length
    assert.equal(count(open), count(close), `brackets of ${expression}`)
  }
  /** @type {Set<string>} */
  const labels = new Set(TARGET)
  /** @type {string[]} */
  const grouped = []
  const names = []
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]
    if (!/^[a-zA-Z_]/.test(token)) continue
    if (GROUPING.has(token)) {
      grouped.push(...namesFrom(tokens, i + 1))
      i = tokens.indexOf(')', i)
      continue
    }
    if (WORDS.has(token)) continue
    const name = token.replace(/_(?:bucket|sum|count)$/, '')
    const family =
      token === 'up' ? { type: 'gauge', labels: [] } : (families.get(token) ?? families.get(name))
    assert.ok(family, `${token} of ${expression}`)
    const own = new Set([...TARGET, ...family.labels, ...(token.endsWith('_bucket') ? ['le'] : [])])
    for (const label of own) labels.add(label)
    if (tokens[i + 1] === '{') {
      for (const label of namesFrom(tokens, i + 1)) assert.ok(own.has(label), `${label} of ${token}`)
      i = tokens.indexOf('}', i)
    }
    const range = tokens[i + 1]?.startsWith('[')
    assert.equal(
      Boolean(range),
      family.type !== 'gauge',
      `${token}: counters are rated, gauges are not: ${expression}`,
    )
    if (token !== 'up') names.push(families.has(token) ? token : name)
  }
  for (const label of grouped) assert.ok(labels.has(label), `${label} of ${expression}`)
  return names
}
