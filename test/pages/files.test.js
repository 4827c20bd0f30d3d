import t from 'tap'
import { fetch } from '../kit/fetch.js'
import { startAdmin } from './admin/rig.js'

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

t.test('the page and everything it names are served by the gateway itself, wherever it is put', async t => {
  for (const prefix of ['/admin', '/behind/a/proxy']) {
    const admin = await startAdmin(t, { admin: { handler_prefix: prefix } })
    const { origin } = new URL(admin.url)
    const page = await fetch(`${origin}${prefix}`)
    t.equal(page.status, 200)
    t.equal((await fetch(`${origin}${prefix}/`)).status, 200)
    const html = await page.text()
    t.notMatch(html, /\{\{/, 'all places are filled')
    t.notMatch(html, /<script>|<style|\son\w+=|\sstyle=/, 'nothing is inline')
    t.match(page.headers.get('content-security-policy'), "default-src 'none'; script-src 'self'")
    const queue = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, path]) => path)
    const seen = new Set(queue)
    for (const path of queue) {
      t.ok(path.startsWith(`${prefix}/assets/`), path)
      const answer = await fetch(origin + path)
      t.equal(answer.status, 200, path)
      t.equal(answer.headers.get('content-type'), TYPES[path.slice(path.lastIndexOf('.') + 1)], path)
      const body = await answer.text()
      if (!path.endsWith('.js')) continue
      t.notMatch(body, /\beval\(|\bnew Function\b|\binnerHTML\b/, `${path} makes nothing from strings`)
      for (const [, imported] of body.matchAll(/^(?:import|export)\b[^'";]*'(\.[^']+)'$/gm)) {
        const next = new URL(imported, origin + path).pathname
        if (!seen.has(next)) queue.push(next)
        seen.add(next)
      }
    }
    t.ok(seen.has(`${prefix}/assets/pages/web/uplot.js`), 'modules that modules import are among them')
    t.ok(seen.has(`${prefix}/assets/metrics/csv-columns.js`))
  }
})

t.test('there is nothing else below it', async t => {
  const admin = await startAdmin(t)
  for (const path of [
    '/assets/',
    '/assets/pages/admin/page/tsconfig.json',
    '/assets/pages/admin/tokens.js',
    '/assets/pages/admin/page/..%2ftokens.js',
    '/assets/pages/files.js',
    '/api',
    '/api/',
    '/api/batch',
    '/api/refresh',
    '/x',
  ]) {
    t.equal((await fetch(admin.url + path)).status, 404, path)
  }
  t.equal((await fetch(admin.url, { method: 'POST', body: 'x' })).status, 405)
})
