// Builds the console at `npm install`. An install without the tools of the build, such as `npm ci --omit=dev` or
// `--omit=optional`, succeeds all the same: kith runs without the console, and says so at its address.
import { existsSync } from 'node:fs'

try {
  if (existsSync('index.html')) {
    const { build } = await import('vite')
    await build({ logLevel: 'warn' })
  }
} catch (error) {
  console.warn(`The console was not built: ${error.message}`)
}
