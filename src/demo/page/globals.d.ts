// The SDK's browser build puts its class on the window.
declare const Centrifuge: typeof import('centrifuge').Centrifuge
