import t from 'tap'
import { testLoad } from './uni-poll-load.js'

t.test('uws', async t => testLoad(t, 'uws', { pollers: 4, publications: 60, crowd: 200 }))
