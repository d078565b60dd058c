"""trees"""
__all__ = []
