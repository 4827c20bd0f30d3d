import t from 'tap'
import { sdkSuite } from './sdk.js'

sdkSuite(t, 'uws')
