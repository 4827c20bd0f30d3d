const encoder = new TextEncoder()

/** Counts what a connection receives: wraps the browser's classes for the SDK. */
export class Meter {
  #onChange
  /** Frames, events, chunks or responses. */
  count = 0
  bytes = 0

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange
  }

  /** @param {unknown} data */
  #receive(data) {
    this.count++
    if (typeof data === 'string') this.bytes += encoder.encode(data).length
    else if (data instanceof ArrayBuffer || data instanceof Uint8Array) this.bytes += data.byteLength
    this.#onChange()
  }

  /**
   * @template {new (...args: any[]) => EventTarget} Source a WebSocket, an EventSource, or a class of that shape
   * @param {Source} Source @returns {Source} counts its messages
   */
  counted(Source) {
    const take = (/** @type {any} */ { data }) => this.#receive(data)
    return class extends Source {
      /** @param {any[]} args */
      constructor(...args) {
        super(...args)
        this.addEventListener('message', take)
      }
    }
  }

  /** @param {string} url @param {RequestInit} options */
  fetch = async (url, options) => {
    const response = await fetch(url, options)
    const { body, status, headers } = response
    // In some browsers a response without content has a body but cannot be constructed with one.
    if (!body || status !== 200) return response
    const count = new TransformStream({
      transform: (chunk, controller) => {
        this.#receive(chunk)
        controller.enqueue(chunk)
      },
    })
    return new Response(body.pipeThrough(count), { status, headers })
  }
}
