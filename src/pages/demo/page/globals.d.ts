// The SDK's browser build puts its class on the window.
declare var Centrifuge: typeof import('centrifuge').Centrifuge
