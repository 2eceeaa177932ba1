import { useBlocker } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { messages } from './messages.ts'

/**
 * Asks before the page is left or loaded again while something on it is not saved. Only the buttons of the browser leave a page below a
 * dialog: the navigation after a write of the dialog is its own.
 */
export function useUnsaved(isUnsaved: () => boolean, isInDialog = false): void {
  const texts = useMessages(messages)
  useBlocker({
    shouldBlockFn: ({ action }) =>
      isUnsaved() && !(isInDialog && (action === 'PUSH' || action === 'REPLACE')) && !window.confirm(texts.unsaved),
    enableBeforeUnload: isUnsaved,
  })
}
