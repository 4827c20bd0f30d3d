// Messages of forked processes: objects with a `type`.

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {string} type of the awaited message
 * @returns {Promise<any>} the next message of this type; rejects if the child ends or sends `{type: 'error', message}`
 */
export function messageFrom(child, type) {
  return new Promise((resolve, reject) => {
    const onMessage = (/** @type {any} */ message) => {
      if (message.type !== type && message.type !== 'error') return
      removeListeners()
      if (message.type === type) resolve(message)
      else reject(new Error(message.message))
    }
    /** @param {number | null} code @param {string | null} signal */
    const onExit = (code, signal) => {
      removeListeners()
      reject(new Error(`a process with clients ended with ${signal ?? `exit code ${code}`}`))
    }
    const removeListeners = () => {
      child.off('message', onMessage)
      child.off('exit', onExit)
    }
    child.on('message', onMessage)
    child.on('exit', onExit)
  })
}
