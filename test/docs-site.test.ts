import { globSync } from 'node:fs'
import { expect, it } from 'vitest'
import { fileOf, navigation } from '../docs/.vitepress/navigation.ts'
import { checkout } from './support/process.ts'

it('the navigation of the documentation has each page once, and the decisions by their index', () => {
  const pages = ['docs/*.md', 'docs/console/*.md', 'docs/decisions/README.md', 'client/README.md']
  const files = globSync([...pages, 'CHANGELOG.md', 'SECURITY.md'], { cwd: checkout })
  expect(navigation.flatMap(group => group.pages.map(fileOf)).sort()).toEqual(files.sort())
})
