/**
 * Recreates a value when a reload has replaced the configuration.
 * @template C, T
 * @param {() => C} read @param {(config: C) => T} make
 */
export function derive(read, make) {
  /** @type {C | undefined} */
  let from
  /** @type {T} */
  let value
  return () => {
    const config = read()
    if (config !== from) {
      value = make(config)
      from = config
    }
    return value
  }
}
