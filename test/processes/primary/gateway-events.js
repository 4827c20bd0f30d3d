/**
 * Waits for an event of a gateway object.
 * @param {any} gateway @param {string} event @param {(...args: any[]) => boolean} [matches]
 * @returns {Promise<any>} its first argument
 */
export const event = (gateway, event, matches = () => true) =>
  new Promise(resolve => {
    const listener = (...args) => {
      if (!matches(...args)) return
      gateway.off(event, listener)
      resolve(args[0])
    }
    gateway.on(event, listener)
  })
