/** Maximum bytes of all pages. */
const MAX_BYTES = 16 * 1024 * 1024
/** Bytes of a page, excluding its text. */
const PAGE_BYTES = 300

/** `until`: when its first entry expires, unix ms. @typedef {{text: Buffer, cursor: string, until: number}} Page */

/**
 * Pages of maps as text: after an outage, thousands of clients read the same state. The least recently used go first.
 * A change gives its map a new revision, so that its former pages are no longer found.
 */
export class PageCache {
  /** By revision and query, least recently used first. @type {Map<string, Page>} */
  #pages = new Map()
  #bytes = 0

  /** @param {string} id @param {number} now unix ms @returns {Page | undefined} */
  get(id, now) {
    const page = this.#pages.get(id)
    if (page === undefined) return undefined
    this.#delete(id, page)
    if (page.until <= now) return undefined
    this.#insert(id, page)
    return page
  }

  /** @param {string} id @param {Page} page */
  add(id, page) {
    this.#insert(id, page)
    for (const [oldest, { text }] of this.#pages) {
      if (this.#bytes <= MAX_BYTES) return
      this.#delete(oldest, { text })
    }
  }

  /** @param {string} id @param {Page} page */
  #insert(id, page) {
    this.#pages.set(id, page)
    this.#bytes += PAGE_BYTES + page.text.length
  }

  /** @param {string} id @param {{text: Buffer}} page */
  #delete(id, { text }) {
    this.#pages.delete(id)
    this.#bytes -= PAGE_BYTES + text.length
  }
}
