#!/usr/bin/env node
// Plain JavaScript, because a Node.js that cannot run TypeScript must still be able to say so.
import { createRequire } from 'node:module'

/** @param {string} problem */
function stop(problem) {
  process.stderr.write(`${problem}\n`)
  process.exitCode = 1
}

if (process.features.typescript) {
  await import('./main.ts').catch(error => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    stop(`A package of kith is not installed: run npm install first. (${error.message})`)
  })
} else {
  const { engines } = createRequire(import.meta.url)('../package.json')
  stop(
    `kith needs Node.js ${engines.node}, and this is ${process.version}: run npm install without --omit=dev, which brings Node.js 24 along.`,
  )
}
