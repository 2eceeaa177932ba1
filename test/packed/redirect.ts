// Lets the tests of this process import the installed package instead of the sources that it was made of.
import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

const checkout = new URL('../../', import.meta.url).href
const installed = pathToFileURL(`${process.env.KITH_TEST_PACKAGES}/node_modules/kith/`).href

/** The file of the package that a source or a dependency became; undefined for tests, what they alone use, and a package's own imports. */
function packagedOf(specifier: string, url: string): string | undefined {
  if (!url.startsWith(checkout) || url.endsWith('.test.ts') || specifier.startsWith('#')) return undefined
  const isSource = url.endsWith('.ts')
  const path = isSource ? url.slice(checkout.length, -3) : `dependencies/${specifier.replace(/\.js$/, '')}`
  const file = new URL(`${path}.js`, installed)
  return existsSync(file) ? file.href : undefined
}

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const url = packagedOf(specifier, resolved.url)
    return url === undefined ? resolved : { url, format: 'module', shortCircuit: true }
  },
})
