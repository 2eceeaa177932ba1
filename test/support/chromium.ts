import { execFile } from 'node:child_process'
import { existsSync, watch } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'

const runFile = promisify(execFile)

/** Unpacks Chromium into TMPDIR. This variable makes the package unpack the libraries that a plain Debian lacks as well. */
const unpackScript = `import('@sparticuz/chromium').then(({ default: chromium }) => chromium.executablePath())`
const withLibraries = { AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' }

/**
 * Unpacks the Chromium of the package @sparticuz/chromium below the folder `parent`, and returns its folder. This takes 2.3 s of
 * processor time, so of several processes one unpacks, and the others wait.
 */
async function unpackChromium(parent: string): Promise<string> {
  const folder = join(parent, 'chromium')
  if (existsSync(folder)) return folder
  const unfinished = join(parent, 'chromium-unfinished')
  const created = await mkdir(unfinished, { recursive: true })
  if (created === undefined) return waitForFolder(parent, folder)
  try {
    await runFile(process.execPath, ['--input-type=module', '--eval', unpackScript], {
      cwd: import.meta.dirname,
      env: { ...process.env, ...withLibraries, TMPDIR: unfinished },
    })
    // Pages look the same wherever the browser runs, because the only fonts are those of the package.
    const fonts = `<fontconfig><dir>${join(folder, 'fonts/fonts')}</dir><cachedir>${join(folder, 'font-cache')}</cachedir></fontconfig>`
    await writeFile(join(unfinished, 'fonts.conf'), fonts)
    await rename(unfinished, folder)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    throw error
  }
  return folder
}

/** Waits until another process has unpacked Chromium: the folder is complete when it gets its name. */
function waitForFolder(parent: string, folder: string): Promise<string> {
  return new Promise(resolve => {
    const watcher = watch(parent, settle)
    function settle() {
      if (!existsSync(folder)) return
      watcher.close()
      resolve(folder)
    }
    settle()
  })
}

/** Starts the Chromium of the package. The program and its files are below the folder `parent`. */
export async function launchChromium(parent: string): Promise<Browser> {
  const folder = await unpackChromium(parent)
  // Playwright puts the profile of the browser into this folder.
  const { TMPDIR } = process.env
  process.env.TMPDIR = folder
  try {
    return await chromium.launch({
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
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  }
}
