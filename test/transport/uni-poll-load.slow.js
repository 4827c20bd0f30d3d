import t from 'tap'

import { testLoad } from './uni-poll-load.js'

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, async t => testLoad(t, driver, { pollers: 12, publications: 400, crowd: 2000 }))
}
