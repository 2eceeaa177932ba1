import { describe } from 'vitest'
import { checkPages } from '../../test/support/console-pages.ts'

describe('has no violation of WCAG 2.2 AA and no horizontal scrolling in any window', () => {
  checkPages([
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
    { width: 360, colorScheme: 'light' },
    { width: 360, colorScheme: 'dark' },
  ])
})
