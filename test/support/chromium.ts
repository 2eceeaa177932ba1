import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'

const runFile = promisify(execFile)

/** Unpacks Chromium into TMPDIR. This variable makes the package unpack the libraries that a plain Debian lacks as well. */
const unpackScript = `import('@sparticuz/chromium').then(({ default: chromium }) => chromium.executablePath())`
const withLibraries = { AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' }

/**
 * Unpacks the Chromium of the package @sparticuz/chromium below the folder `parent`, once, and returns its folder. It is
 * complete when it gets its name, so files that start together can share it.
 */
async function unpackChromium(parent: string): Promise<string> {
  const folder = join(parent, 'chromium')
  if (existsSync(folder)) return folder
  const unpacked = await mkdtemp(join(parent, 'chromium-'))
  await runFile(process.execPath, ['--input-type=module', '--eval', unpackScript], {
    cwd: import.meta.dirname,
    env: { ...process.env, ...withLibraries, TMPDIR: unpacked },
  })
  // Pages look the same wherever the browser runs, because the only fonts are those of the package.
  const fonts = `<fontconfig><dir>${join(folder, 'fonts/fonts')}</dir><cachedir>${join(folder, 'font-cache')}</cachedir></fontconfig>`
  await writeFile(join(unpacked, 'fonts.conf'), fonts)
  await rename(unpacked, folder).catch(async error => {
    if (!existsSync(folder)) throw error
    await rm(unpacked, { recursive: true })
  })
  return folder
}

/** Starts the Chromium of the package, which is unpacked below the folder `parent`. */
export async function launchChromium(parent: string): Promise<Browser> {
  const folder = await unpackChromium(parent)
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    // The sandbox needs rights that a container or root often lacks. The pages are the service's own.
    chromiumSandbox: false,
    env: {
      HOME: folder,
      TMPDIR: folder,
      FONTCONFIG_FILE: join(folder, 'fonts.conf'),
      LD_LIBRARY_PATH: join(folder, 'al2023/lib'),
    },
  })
}
