import { describe } from 'vitest'
import { checkPages } from '../../test/support/console-pages.ts'

describe('has no violation of WCAG 2.2 AA and no horizontal scrolling', () => {
  checkPages([{ width: 1280, colorScheme: 'light' }])
})
