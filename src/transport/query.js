/**
 * One value of a query, without taking the whole of it apart: a connect request in a URL is long, and connections are many.
 * @param {string} query raw
 * @param {string} name of letters and `_`
 * @returns {string | null} decoded; null if absent
 */
export function queryValue(query, name) {
  const length = name.length
  for (let at = 0; at >= 0 && at < query.length; ) {
    const next = query.indexOf('&', at)
    const end = next < 0 ? query.length : next
    if (query.startsWith(name, at) && (query[at + length] === '=' || at + length === end)) {
      const value = query.slice(at + length + 1, end)
      if (!value.includes('%') && !value.includes('+')) return value
      try {
        return decodeURIComponent(value.replaceAll('+', ' '))
      } catch {
        // Broken escapes are taken as the URL standard says.
        return new URLSearchParams(query).get(name)
      }
    }
    at = next < 0 ? -1 : next + 1
  }
  return null
}
