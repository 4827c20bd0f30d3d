// Text format of Prometheus, version 0.0.4.

/** @import { Facts, Family, Row } from './families.js' */

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const escapeText = (/** @type {string} */ text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
const escapeLabel = (/** @type {string | number} */ value) => escapeText(String(value)).replaceAll('"', '\\"')

/** @param {Family} family @param {Row} row */
function linesOf({ name, labels }, [value, ...values]) {
  const own = labels.map((label, i) => `${label}="${escapeLabel(values[i])}"`)
  const line = (
    /** @type {string} */ suffix,
    /** @type {number} */ number,
    /** @type {string[]} */ more = [],
  ) => {
    const all = [...own, ...more].join(',')
    return `${name}${suffix}${all === '' ? '' : `{${all}}`} ${number}`
  }
  if (typeof value === 'number') return Number.isFinite(value) ? [line('', value)] : []
  if (!value) return []
  const { bounds, counts, count, sum } = value
  return [
    ...bounds.map((bound, i) => line('_bucket', counts[i], [`le="${bound}"`])),
    line('_bucket', count, ['le="+Inf"']),
    line('_sum', sum),
    line('_count', count),
  ]
}

/** Omits families without values. @param {readonly Family[]} families @param {Facts} facts */
export function expose(families, facts) {
  const texts = []
  for (const family of families) {
    const { name, help, type } = family
    const lines = family.read(facts).flatMap(row => linesOf(family, row))
    if (lines.length === 0) continue
    texts.push([`# HELP ${name} ${escapeText(help)}`, `# TYPE ${name} ${type}`, ...lines].join('\n'))
  }
  return `${texts.join('\n\n')}\n`
}
