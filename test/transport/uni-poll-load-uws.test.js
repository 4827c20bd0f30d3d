import t from 'tap'
import { testLoad } from './uni-poll-load.js'

testLoad(t, 'uws')
