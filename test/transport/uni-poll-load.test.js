import t from 'tap'
import { drivers } from '../session/support.js'
import { testLoad } from './uni-poll-load.js'

for (const driver of drivers) {
  t.test(driver, async t => testLoad(t, driver, { pollers: 4, publications: 60, crowd: 200 }))
}
