import t from 'tap'
import { fetch } from '../kit/fetch.js'
import { startAdmin } from './admin/rig.js'
import { crawl, namedIn } from './crawl.js'

for (const prefix of ['/admin', '/behind/a/proxy'])
  t.test(`the gateway serves the admin page at ${prefix} with all its files`, async t => {
    const admin = await startAdmin(t, { admin: { handler_prefix: prefix } })
    const { origin } = new URL(admin.url)
    const page = await fetch(`${origin}${prefix}`)
    t.equal(page.status, 200)
    t.equal((await fetch(`${origin}${prefix}/`)).status, 200)
    const html = await page.text()
    t.notMatch(html, /\{\{/, 'all placeholders are replaced')
    t.notMatch(html, /<script>|<style|\son\w+=|\sstyle=/, 'nothing is inline')
    t.match(page.headers.get('content-security-policy'), "default-src 'none'; script-src 'self'")
    const seen = await crawl(t, origin, namedIn(html), `${prefix}/assets/`)
    for (const path of ['pages/web/uplot.js', 'metrics/csv-columns.js'])
      t.ok(seen.has(`${prefix}/assets/${path}`), `${path} is imported by a module`)
  })

t.test('other paths below the admin page get 404', async t => {
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
