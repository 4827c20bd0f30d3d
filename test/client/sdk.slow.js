import t from 'tap'
import { sdkStorm } from './sdk.js'

sdkStorm(t, 'uws')
sdkStorm(t, 'node')
