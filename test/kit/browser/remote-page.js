// A page in Chromium that a test can ask and drive: the DevTools protocol over a pair of pipes, messages ended by a
// zero byte.

import { until } from '../wait.js'
import { openPage } from './browser.js'

const FROM_BROWSER = 4
const TO_BROWSER = 3
/** A page that has not changed as expected by then never will, ms. */
const LIMIT_MS = 60_000

export class RemotePage {
  /** @type {string[]} exceptions of the page, and what its policy forbade */
  faults = []
  /** @type {string[]} everything that the console shows as an error */
  errors = []
  #browser
  #session = ''
  #id = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #calls = new Map()
  #text = ''
  /** Documents that have loaded. @type {Set<string>} */
  #loads = new Set()

  /** @param {import('node:child_process').ChildProcess} browser */
  constructor(browser) {
    this.#browser = browser
    const from = /** @type {import('node:stream').Readable} */ (browser.stdio[FROM_BROWSER])
    from.setEncoding('utf8').on('data', chunk => {
      const messages = (this.#text + chunk).split('\0')
      this.#text = /** @type {string} */ (messages.pop())
      for (const message of messages) this.#take(JSON.parse(message))
    })
    // One that is killed before it has read everything resets its pipes.
    const to = /** @type {import('node:stream').Writable} */ (browser.stdio[TO_BROWSER])
    for (const stream of [from, to]) stream.on('error', () => {})
    browser.once('exit', () => {
      for (const { reject } of this.#calls.values()) reject(new Error('the browser has ended'))
      this.#calls.clear()
    })
  }

  /**
   * @param {any} t
   * @param {string} url
   */
  static async open(t, url) {
    const browser = await openPage(t, 'about:blank', {
      args: ['--remote-debugging-pipe'],
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    })
    const page = new RemotePage(browser)
    const { targetId } = await page.#call('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await page.#call('Target.attachToTarget', { targetId, flatten: true })
    page.#session = sessionId
    for (const domain of ['Runtime', 'Log', 'Page']) await page.#call(`${domain}.enable`)
    await page.#call('Page.setLifecycleEventsEnabled', { enabled: true })
    await page.go(url)
    return page
  }

  /** @param {any} message */
  #take({ id, result, error, method, params }) {
    if (method === 'Runtime.exceptionThrown') {
      const { exception, text } = params.exceptionDetails
      this.faults.push(exception?.description ?? text)
    } else if (method === 'Log.entryAdded' && params.entry.source === 'security') {
      this.faults.push(params.entry.text)
    }
    if (method === 'Log.entryAdded' && params.entry.level === 'error') {
      this.errors.push(`${params.entry.text} ${params.entry.url ?? ''}`)
    } else if (method === 'Runtime.consoleAPICalled' && params.type === 'error') {
      this.errors.push(JSON.stringify(params.args))
    }
    if (method === 'Page.lifecycleEvent' && params.name === 'load') {
      this.#loads.add(params.loaderId)
    }
    const call = this.#calls.get(id)
    if (!call) return
    this.#calls.delete(id)
    if (error) call.reject(new Error(error.message))
    else call.resolve(result)
  }

  /**
   * @param {string} method
   * @param {object} [params]
   * @returns {Promise<any>}
   */
  #call(method, params = {}) {
    const id = ++this.#id
    const session = this.#session === '' ? {} : { sessionId: this.#session }
    const to = /** @type {import('node:stream').Writable} */ (this.#browser.stdio[TO_BROWSER])
    to.write(`${JSON.stringify({ id, method, params, ...session })}\0`)
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }))
    // At the end of a test nobody may wait for it any more.
    answer.catch(() => {})
    return answer
  }

  /**
   * Goes to a page, and waits until it is loaded: that the one before has loaded may be told late.
   * @param {string} url
   */
  async go(url) {
    const { loaderId } = await this.#call('Page.navigate', { url })
    await until(() => this.#loads.has(loaderId), `${url} to load`)
  }

  /** @param {number} width pixels of the window */
  async resize(width) {
    const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: false }
    await this.#call('Emulation.setDeviceMetricsOverride', metrics)
  }

  /**
   * @param {number} width of the window
   * @returns {Promise<boolean>} nothing makes the page wider than that
   */
  async fits(width) {
    await this.resize(width)
    await this.evaluate(`new Promise(resolve => {
      const look = () => innerWidth === ${width} && resolve(true)
      addEventListener('resize', look)
      look()
    })`)
    return this.evaluate(`document.documentElement.scrollWidth <= ${width}`)
  }

  /**
   * @param {string} expression its value is awaited, and must be JSON
   * @returns {Promise<any>}
   */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.#call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }

  /**
   * Waits until something can be read on the page.
   * @param {string} expression looked at again whenever the document changes; true ends the wait
   */
  async until(expression) {
    await this.evaluate(`new Promise((resolve, reject) => {
      const check = () => {
        if (!(${expression})) return false
        clearTimeout(limit)
        observer.disconnect()
        resolve()
        return true
      }
      const limit = setTimeout(
        () => reject(new Error(${JSON.stringify(`never seen: ${expression}`)} + ' in ' + document.body.innerText)),
        ${LIMIT_MS},
      )
      const observer = new MutationObserver(check)
      if (!check()) observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
    })`)
  }

  /** @param {string} id of an element */
  async click(id) {
    await this.evaluate(`document.getElementById(${JSON.stringify(id)}).click()`)
  }

  /**
   * @param {string} id of an element
   * @returns {Promise<string>}
   */
  text(id) {
    return this.evaluate(`document.getElementById(${JSON.stringify(id)}).textContent`)
  }
}
