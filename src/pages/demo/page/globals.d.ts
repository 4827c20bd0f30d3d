// The SDK's browser build exports its class on window.
declare var Centrifuge: typeof import('centrifuge').Centrifuge
