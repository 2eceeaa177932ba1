import type { RefObject } from 'react'
import { Menu as AriaMenu, MenuItem, Popover } from 'react-aria-components'
import fieldStyles from './field.module.css'

export type MenuAction = { id: string; label: string; action: () => void; isDisabled?: boolean }

type MenuListProps = {
  label: string
  actions: readonly MenuAction[]
  button: RefObject<HTMLButtonElement | null>
  onClose: () => void
}

/** The open list of a menu. */
export default function MenuList({ label, actions, button, onClose }: MenuListProps) {
  return (
    <Popover
      triggerRef={button}
      isOpen
      onOpenChange={isOpen => !isOpen && onClose()}
      aria-label={label}
      className={fieldStyles.popover}
    >
      <AriaMenu
        className={fieldStyles.options}
        aria-label={label}
        autoFocus="first"
        onClose={onClose}
        onAction={key => actions.find(({ id }) => id === key)?.action()}
      >
        {actions.map(({ id, label, isDisabled }) => (
          <MenuItem key={id} id={id} isDisabled={isDisabled ?? false} className={fieldStyles.option}>
            {label}
          </MenuItem>
        ))}
      </AriaMenu>
    </Popover>
  )
}
