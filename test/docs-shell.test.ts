import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkout } from './support/process.ts'
import { pages, runnable } from './support/shell-blocks.ts'

it('every picture is shown on a page', () => {
  const shown = pages.map(({ text }) => text).join('\n') + readFileSync(join(checkout, 'README.md'), 'utf8')
  const pictures = globSync('docs/**/images/*.png', { cwd: checkout })
  expect(pictures.length).toBeGreaterThan(10)
  expect(pictures.filter(picture => !shown.includes(`images/${basename(picture)}`))).toEqual([])
})

describe('the shell blocks of the documents', () => {
  it('are not run only for a reason that the page gives', () => {
    const comments = pages.flatMap(({ blocks }) => blocks.flatMap(({ comment }) => comment ?? []))
    expect(comments.filter(comment => !/^not run: .{10,}/.test(comment))).toEqual([])
    expect(runnable.length).toBeGreaterThan(7)
  })

  it('call the program kith, and define no function of that name', () => {
    for (const { page, text } of pages) {
      expect(text, page).not.toMatch(/^\s*kith\s*\(\)/m)
      expect(text, page).not.toMatch(/npm run (-s )?kith --/)
      expect(text, page).not.toMatch(/\$\{?TOKEN\b/)
    }
  })
})
