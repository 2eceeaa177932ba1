import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import optimizeLocales from '@react-aria/optimize-locales-plugin'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { patchCssModules } from 'vite-css-modules'

const textFiles = /\.(js|css|html|svg)$/

/** Writes each text file once more in brotli and in gzip, so that the service never compresses. */
function compressFiles(): Plugin {
  return {
    name: 'compress-files',
    apply: 'build',
    enforce: 'post',
    async writeBundle({ dir }, bundle) {
      const names = [...Object.keys(bundle), 'icon.svg'].filter(name => textFiles.test(name))
      await Promise.all(
        names.map(async name => {
          const path = join(dir!, name)
          const content = await readFile(path)
          await writeFile(`${path}.br`, await promisify(brotliCompress)(content))
          await writeFile(`${path}.gz`, await promisify(gzip)(content))
        }),
      )
    },
  }
}

export default defineConfig({
  base: '/console/',
  // React Aria has texts in 34 languages. The console needs those of its own languages.
  plugins: [
    { ...optimizeLocales.vite({ locales: ['en-US', 'de-DE', 'it-IT'] }), enforce: 'pre' },
    react(),
    // The types of the classes of each module, so that a class that does not exist fails the type check.
    patchCssModules({ generateSourceTypes: true }),
    compressFiles(),
  ],
  resolve: {
    alias: {
      '@kith/client': join(import.meta.dirname, '../client/index.ts'),
      // The rules of kith import and kith export run here too, with the builds of their parsers for browsers.
      'csv-parse': 'csv-parse/browser/esm',
      'csv-stringify/sync': 'csv-stringify/browser/esm/sync',
    },
  },
  // `npm run dev` draws the pages from their sources, with the data of a kith that runs on its usual address.
  server: {
    proxy: Object.fromEntries(
      ['/v1', '/console/session', '/console/sign-in-methods'].map(path => [path, 'http://127.0.0.1:8080']),
    ),
  },
  css: { transformer: 'lightningcss' },
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // The content security policy allows no data: addresses for scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
    // Most of the build is the compression, which the report of slow plugins would name each time.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
})
