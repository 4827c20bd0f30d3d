// A headless Chromium for tests: Debian's, or the program named by CHROMIUM.

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isInstalled, skipFile, unless } from '../needs.js'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

const MISSING =
  'no Chromium on the PATH: install it (Debian: apt-get install chromium), or name it in CHROMIUM'

const findChromium = () => [process.env.CHROMIUM, ...NAMES].find(name => name && isInstalled(name))

/** Skips this test file without Chromium. @param {any} t the root, before its first test */
export const needsChromium = t => skipFile(t, unless(findChromium() !== undefined, MISSING))

/** @param {string} line of `--enable-logging=stderr` @returns {boolean} whether it is from the page under test */
export const isOfPage = line => line.includes('CONSOLE') && !line.includes('source: chrome://')

/**
 * Opens a page in a browser that ends with the test.
 * @param {any} t @param {string} url
 * @param {{args?: string[], stdio?: import('node:child_process').StdioOptions}} [options]
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
    // The whole process group, with the browser's children.
    process.kill(-(/** @type {number} */ (browser.pid)), 'SIGKILL')
    await ended
    // The children exit a moment later and still write to the folder.
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  })
  return browser
}
