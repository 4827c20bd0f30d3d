import t from 'tap'

import { testLoad } from './uni-poll-load.js'

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(driver, async t => testLoad(t, driver, { pollers: 8, publications: 200, crowd: 800 }))
}
