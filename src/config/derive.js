/**
 * A value made of the configuration, and made again when a reload has replaced it.
 * @template C, T
 * @param {() => C} read the configuration, or a block of it, as it is now @param {(config: C) => T} make
 * @returns {() => T}
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
