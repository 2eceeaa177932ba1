#!/usr/bin/env -S node --expose-gc --max-semi-space-size=16 --max-old-space-size=1024
// This file is JavaScript, so that a Node.js without TypeScript support can run it and print the message below. The
// first line is the command of an installed package, with the flags of `npm start`.
import { existsSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

// Node.js caches compiled code in this folder if it is writable. A command that took 0.66 s of processor time takes
// 0.37 s.
module.enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/kith', import.meta.url)))

/** @param {string} problem */
function stop(problem) {
  process.stderr.write(`${problem}\n`)
  process.exitCode = 1
}

if (process.features.typescript) {
  await import('./main.ts').catch(error => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    stop(`A package of kith is not installed. Run npm install. (${error.message})`)
  })
} else {
  const { engines } = createRequire(import.meta.url)('../package.json')
  const isCheckout = existsSync(new URL('./main.ts', import.meta.url))
  const remedy = isCheckout ? 'Run npm install without --omit=dev' : 'Run npm install node@24 beside it'
  stop(`kith needs Node.js ${engines.node}; this is ${process.version}. ${remedy}: it installs Node.js 24.`)
}
