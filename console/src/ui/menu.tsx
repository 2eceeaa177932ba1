import { lazy, type ReactNode, Suspense, useRef, useState } from 'react'
import { Button } from './button.tsx'
import type { MenuAction } from './menu-list.tsx'

const loadList = () => import('./menu-list.tsx')
const MenuList = lazy(loadList)

type MenuProps = {
  label: string
  actions: readonly MenuAction[]
  children?: ReactNode
}

/** A button that opens a list of actions. The 34 kB of the list load when the button gets the pointer or the focus. */
export function Menu({ label, actions, children }: MenuProps) {
  const button = useRef<HTMLButtonElement>(null)
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button
        ref={button}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onPress={() => setOpen(true)}
        onHoverStart={loadList}
        onFocus={loadList}
        onKeyDown={event => (event.key === 'ArrowDown' ? setOpen(true) : event.continuePropagation())}
      >
        {children ?? label}
      </Button>
      <Suspense>
        {isOpen && <MenuList label={label} actions={actions} button={button} onClose={() => setOpen(false)} />}
      </Suspense>
    </>
  )
}
