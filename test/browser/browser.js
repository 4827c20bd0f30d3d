// A headless Chromium for tests: Debian's, or whatever `CHROMIUM` names.

import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** @returns {string} */
function findChromium() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const places = [process.env.CHROMIUM, ...NAMES.flatMap(name => folders.map(folder => join(folder, name)))]
  for (const place of places) {
    if (!place) continue
    try {
      accessSync(place, constants.X_OK)
      return place
    } catch {}
  }
  throw new Error(
    'no Chromium on the PATH: install it (Debian: apt-get install chromium), or name it in CHROMIUM',
  )
}

/**
 * Opens a page in a browser that ends with the test.
 * @param {any} t
 * @param {string} url
 * @param {{args?: string[], stdio?: import('node:child_process').StdioOptions}} [options]
 * @returns {Promise<import('node:child_process').ChildProcess>}
 */
export async function openPage(t, url, { args = [], stdio = 'ignore' } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'halley-browser-'))
  const browser = spawn(
    findChromium(),
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-extensions',
      '--no-first-run',
      '--no-proxy-server',
      `--user-data-dir=${folder}`,
      ...args,
      url,
    ],
    { stdio, detached: true },
  )
  const ended = new Promise(resolve => browser.once('exit', resolve))
  t.teardown(async () => {
    // It has children of its own: the whole group goes.
    process.kill(-(/** @type {number} */ (browser.pid)), 'SIGKILL')
    await ended
    // Those children die a little later than it does, and write to the folder until then.
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  })
  return browser
}
