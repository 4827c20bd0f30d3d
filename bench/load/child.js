/**
 * The child's side of `children.js`: answers the parent's questions, each with one message. Ends with the parent.
 *
 * @param {Record<string, (params: any) => any>} handlers by the question's name; may return a Promise
 */
export function answer(handlers) {
  process.on('disconnect', () => process.exit())
  // Ctrl-C in a terminal reaches every process; the parent ends its children in order.
  process.on('SIGINT', () => {})
  process.on('message', async message => {
    const { id, name, params } = /** @type {{id: number, name: string, params: any}} */ (message)
    try {
      process.send?.({ id, result: await handlers[name](params) })
    } catch (error) {
      process.send?.({ id, error: error.message })
    }
  })
}
