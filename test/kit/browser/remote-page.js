// A Chromium page controlled by a test: the DevTools protocol over two pipes, messages terminated by a zero byte.

import { until } from '../wait.js'
import { openPage } from './browser.js'

const FROM_BROWSER = 4
const TO_BROWSER = 3
/** Timeout of `until`, ms. */
const LIMIT_MS = 60_000

export class RemotePage {
  /** @type {string[]} exceptions of the page, and violations of its policy */
  faults = []
  /** @type {string[]} errors in the console */
  errors = []
  #browser
  #session = ''
  #id = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #calls = new Map()
  #text = ''
  /** Documents that have loaded. @type {Set<string>} */
  #loads = new Set()

  constructor(browser) {
    this.#browser = browser
    const from = /** @type {import('node:stream').Readable} */ (browser.stdio[FROM_BROWSER])
    from.setEncoding('utf8').on('data', chunk => {
      const messages = (this.#text + chunk).split('\0')
      this.#text = /** @type {string} */ (messages.pop())
      for (const message of messages) this.#take(JSON.parse(message))
    })
    // A killed browser resets its pipes.
    const to = /** @type {import('node:stream').Writable} */ (browser.stdio[TO_BROWSER])
    for (const stream of [from, to]) stream.on('error', () => {})
    browser.once('exit', () => {
      for (const { reject } of this.#calls.values()) reject(new Error('the browser has ended'))
      this.#calls.clear()
    })
  }

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

  #call(method, params = {}) {
    const id = ++this.#id
    const session = this.#session === '' ? {} : { sessionId: this.#session }
    const to = /** @type {import('node:stream').Writable} */ (this.#browser.stdio[TO_BROWSER])
    to.write(`${JSON.stringify({ id, method, params, ...session })}\0`)
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }))
    // It may have no listener when a test ends.
    answer.catch(() => {})
    return answer
  }

  /** Resolves when the page is loaded; the previous page's load event may be late. @param {string} url */
  async go(url) {
    const { loaderId } = await this.#call('Page.navigate', { url })
    await until(() => this.#loads.has(loaderId), `${url} to load`)
  }

  /** @param {number} width pixels of the window */
  async resize(width) {
    const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: false }
    await this.#call('Emulation.setDeviceMetricsOverride', metrics)
  }

  /** @param {number} width of the window @returns {Promise<boolean>} whether all content fits */
  async fits(width) {
    await this.resize(width)
    await this.evaluate(`new Promise(resolve => {
      const look = () => innerWidth === ${width} && resolve(true)
      addEventListener('resize', look)
      look()
    })`)
    return this.evaluate(`document.documentElement.scrollWidth <= ${width}`)
  }

  /** @param {string} expression awaited; its value must be JSON @returns {Promise<any>} */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.#call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }

  /** @param {string} expression checked at each change of the document, until it is true */
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

  /** Sets fields, and submits a form. @param {Record<string, string>} values by id @param {string} [form] its id */
  async fill(values, form) {
    await this.evaluate(`(() => {
      for (const [id, value] of Object.entries(${JSON.stringify(values)})) {
        const field = document.getElementById(id)
        field.value = value
        field.dispatchEvent(new Event('input'))
        field.dispatchEvent(new Event('change'))
      }
      document.getElementById(${JSON.stringify(form ?? '')})?.requestSubmit()
    })()`)
  }

  async click(id) {
    await this.evaluate(`document.getElementById(${JSON.stringify(id)}).click()`)
  }

  text(id) {
    return this.evaluate(`document.getElementById(${JSON.stringify(id)}).textContent`)
  }
}
