import t from 'tap'
import { drivers } from '../session/support.js'
import { testLoad } from './uni-poll-load.js'

for (const driver of drivers) {
  t.test(driver, async t => testLoad(t, driver, { pollers: 12, publications: 400, crowd: 2000 }))
}
